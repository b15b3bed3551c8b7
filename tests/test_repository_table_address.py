"""The one spelling of a folder of a ref."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.exceptions import InvalidArgumentError
from esker.repo.table_address import address, parse, parsed

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
PLACES = st.builds(str.__add__, st.sampled_from(["/", "s3://", "memory://", "az://c@a.b/"]), TEXT)


@given(PLACES, st.one_of(TEXT, st.text("/@%~^aä", min_size=1)), st.text("/@%?#: äa.*", max_size=12))
def test_what_is_written_is_what_is_read(repository: str, ref: str, path: str) -> None:
    written = address(repository, ref, path)
    assert parse(written) == (repository, ref, path.strip("/"))
    assert parse(written + "/") == parse(written)
    # What looks for the first `@` or `/` after the scheme finds the right ones.
    authority = written.removeprefix("esker://").partition("/")[0]
    assert authority.count("@") == 1
    assert ":" not in authority


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_none_or_refused(text: str) -> None:
    for uri in (text, f"esker://{text}"):
        try:
            found = parse(uri)
        except InvalidArgumentError:
            continue
        assert found is None or parse(address(*found)) == found


@pytest.mark.parametrize(
    "uri",
    [
        "esker://main/t",
        "esker://main@/t",
        "esker://@main/t",
        "esker://",
        "esker:///lake@main/t",
        "s3://a@b/t",
        "/a@b/c",
    ],
)
def test_what_has_no_repository_before_an_at_sign_is_no_address(uri: str) -> None:
    assert parse(uri) is None
    with pytest.raises(InvalidArgumentError, match="percent-encoded"):
        parsed(uri)


def test_what_means_another_place_elsewhere_is_refused_with_what_to_write() -> None:
    for refused in (lambda: parse("esker://lake@main/t"), lambda: address("lake", "main", "t")):
        with pytest.raises(InvalidArgumentError, match=r"absolute path, found 'lake'.*write esker://%2F.*lake@<ref>/"):
            refused()
    with pytest.raises(InvalidArgumentError, match="%40"):
        parse("esker://%2Flake@main@~1/t")
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        parse("esker://%2Flake@%ff/t")
    with pytest.raises(InvalidArgumentError, match="ref"):
        address("/lake", "", "t")
