package dev.edgebert.core.measure;

/** The device that a measurement runs on. */
public interface Device {
  DeviceInfo info();

  /** Now. */
  DeviceState state();

  /** Whether the app was ever out of the foreground since the run began: it is slower there. */
  boolean leftForeground();
}
