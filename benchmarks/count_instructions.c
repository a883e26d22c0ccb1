/* Plugin of qemu 7.2's user mode: counts the guest's instructions.
 *
 * The guest marks a point with lseek(-4242, k, 0), which fails and does nothing else; the plugin
 * then prints "mark k COUNT" on standard error. Built without qemu's headers, which Debian does not
 * ship: the declarations are those of its documentation (docs/devel/tcg-plugins.rst, API version 1).
 *
 *     gcc -O2 -shared -fPIC -o count_instructions.so count_instructions.c
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define LSEEK_AARCH64 62

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
extern void qemu_plugin_register_vcpu_tb_trans_cb(
    plugin_id id, void (*callback)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(
    struct qemu_plugin_tb *block, int add_u64, void *counter, uint64_t number);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern void qemu_plugin_register_vcpu_syscall_cb(
    plugin_id id, void (*callback)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                                   uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));

int qemu_plugin_version = 1;
static uint64_t count;

static void translated(plugin_id id, struct qemu_plugin_tb *block)
{
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &count, qemu_plugin_tb_n_insns(block));
}

static void called(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    if (number == LSEEK_AARCH64 && (int32_t)a == -4242)
        fprintf(stderr, "mark %" PRIu64 " %" PRIu64 "\n", b, count);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
