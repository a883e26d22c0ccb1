"""The catalogue: exact counts, right families, names that are found and names that are not."""

import pytest

from edgebert.pipeline.catalogue import find_entry, load_catalogue, parameter_count
from edgebert.pipeline.families import all_families
from edgebert.targets.errors import InputError

# Two-label classifiers, counted on the published checkpoints.
PUBLISHED = {
    "bert-base-uncased": 109_483_778,
    "albert-base-v2": 11_685_122,
    "albert-large-v2": 17_686_018,
    "distilbert-base-uncased": 66_955_010,
    "roberta-base": 124_647_170,
    "electra-small-discriminator": 13_549_314,
    "mobilebert-uncased": 24_845_570,
    "TinyBERT_General_4L_312D": 14_350_874,
    "xlm-roberta-base": 278_045_186,
}


@pytest.mark.parametrize("name", load_catalogue())
def test_the_stored_parameter_count_is_the_computed_one(name: str) -> None:
    entry = find_entry(name)
    assert entry.parameters == parameter_count(entry) == PUBLISHED.get(name, entry.parameters)


def test_every_family_has_an_entry_and_every_entry_a_family() -> None:
    assert {entry.model_type for entry in load_catalogue().values()} == set(all_families())


def test_names_hub_ids_and_depth() -> None:
    entry = find_entry("hfl/chinese-roberta-wwm-ext")
    assert (entry.name, entry.model_type, entry.layers) == ("chinese-roberta-wwm-ext", "bert", 12)
    assert find_entry("xlnet-base-cased").layers == 12


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown model 'bert-base-uncase'") as error:
        find_entry("bert-base-uncase")
    assert "bert-base-uncased" in error.value.where
    with pytest.raises(InputError):
        find_entry("")
