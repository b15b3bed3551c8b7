"""Every public name of lakeFS's Python SDK is here, or raises an error that says what to do instead."""

from __future__ import annotations

import importlib
import io
from pathlib import Path

import pytest

from esker.exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    EskerError,
    InvalidArgumentError,
    UnsupportedError,
)
from esker.repo import (
    Branch,
    Change,
    Commit,
    CommonPrefix,
    ImportManager,
    ImportStatus,
    MergeConflictError,
    NoChangesError,
    ObjectInfo,
    ObjectReader,
    ObjectWriter,
    Reference,
    Repository,
    RepositoryProperties,
    StoredObject,
    Tag,
    TransactionBranch,
    WriteableObject,
    exceptions,
)
from esker.repo.sdk_names import MISSING

# Of lakefs 0.16, without what begins with an underscore: the root, its modules and what they define, by module.
NAMES = {
    "esker.repo": [
        *("Branch", "Change", "Client", "Commit", "CommonPrefix", "ImportStatus", "LakeFSDeprecationWarning"),
        *("ObjectInfo", "ObjectReader", "Reference", "Repository", "RepositoryProperties"),
        *("ServerStorageConfiguration", "StoredObject", "Tag", "WriteableObject", "repositories", "repository"),
        # Modules, and what only they have.
        *("auth", "branch", "client", "config", "download", "exceptions", "import_manager", "models", "namedtuple"),
        *("object", "quickstart", "reference", "tag"),
        *("ClientConfig", "ImportManager", "LakeFSIOBase", "LenientNamedTuple", "ObjectWriter", "ServerConfiguration"),
        *("Transaction", "access_token_from_aws_iam_role", "from_aws_role", "from_web_identity", "generate_listing"),
    ],
    "esker.repo.exceptions": [
        *("BadRequestException", "ConflictException", "ForbiddenException", "ImportManagerException"),
        *("InvalidEnvVarFormat", "InvalidRangeException", "LakeFSException", "NoAuthenticationFound"),
        *("NotAuthorizedException", "NotFoundException", "ObjectExistsException", "ObjectNotFoundException"),
        *("PermissionException", "ServerException", "TransactionException", "UnsupportedCredentialsProviderType"),
        *("UnsupportedOperationException", "api_exception_handler", "handle_http_error"),
    ],
}
REFERENCE = ["diff", "get_commit", "id", "log", "merge_into", "object", "objects", "repo_id"]
BASE_BRANCH = [*REFERENCE, "delete_objects", "reset_changes", "uncommitted"]
BRANCH = [*BASE_BRANCH, "cherry_pick", "commit", "create", "delete", "head", "import_data", "revert", "transact"]
STORED = ["copy", "exists", "path", "reader", "ref", "repo", "stat", "storage_id"]
IO = [name for name in dir(io.IOBase) if not name.startswith("_")]
MEMBERS: dict[type, list[str]] = {
    Repository: [
        *("branch", "branches", "commit", "create", "delete", "id"),
        *("metadata", "properties", "ref", "tag", "tags"),
    ],
    Reference: REFERENCE,
    Branch: BRANCH,
    TransactionBranch: [*BASE_BRANCH, "commit_message", "commit_metadata", "source_id", "tag"],
    Tag: [*REFERENCE, "create", "delete"],
    StoredObject: STORED,
    WriteableObject: [*STORED, "delete", "upload", "writer"],
    ImportManager: [
        *("cancel", "commit_message", "commit_metadata", "import_id", "object", "prefix"),
        *("run", "sources", "start", "status", "wait"),
    ],
    ObjectReader: [*IO, "mode", "name", "pre_sign", "read"],
    ObjectWriter: [*IO, "discard", "mode", "name", "pre_sign", "read", "write"],
    Commit: ["committer", "creation_date", "id", "message", "meta_range_id", "metadata", "parents", "unknown"],
    Change: ["path", "path_type", "size_bytes", "type", "unknown"],
    CommonPrefix: ["path", "unknown"],
    ImportStatus: ["commit", "completed", "error", "ingested_objects", "metarange_id", "unknown", "update_time"],
    ObjectInfo: [
        *("checksum", "content_type", "metadata", "mtime", "path"),
        *("physical_address", "physical_address_expiry", "size_bytes", "unknown"),
    ],
    RepositoryProperties: ["creation_date", "default_branch", "id", "storage_id", "storage_namespace", "unknown"],
}


@pytest.fixture
def lake(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "lake")


@pytest.mark.parametrize("module", NAMES)
def test_every_name_of_the_sdk_is_here_or_says_what_to_do(module: str) -> None:
    here = importlib.import_module(module)
    for name in NAMES[module]:
        if name in MISSING[module]:
            with pytest.raises(UnsupportedError, match=f"{module} has no {name}: .*;"):
                getattr(here, name)
        else:
            assert getattr(here, name) is not None
    # No advice for a name that nobody asks for, or that is there.
    assert set(MISSING[module]) <= set(NAMES[module])
    assert not set(MISSING[module]) & set(here.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = here.nothing
    with pytest.raises(ImportError):
        exec(f"from {module} import nothing")
    with pytest.raises(UnsupportedError, match=r"; "):
        exec(f"from {module} import {next(iter(MISSING[module]))}")


def test_every_member_of_the_sdks_classes_is_here_or_says_what_to_do(lake: Repository) -> None:
    main = lake.branch("main")
    written = main.object("a")
    written.upload("1")
    made = main.commit("one")
    (change,) = lake.ref("main~1").diff("main")
    manager = main.import_data().object(f"{lake.uri}/{written.stat().physical_address}", "b")
    with main.transact() as tx, written.writer() as writer:
        objects: dict[type, object] = {
            Repository: lake,
            Reference: made,
            Branch: main,
            TransactionBranch: tx,
            Tag: lake.tag("v1").create("main"),
            StoredObject: made.object("a"),
            WriteableObject: written,
            ImportManager: manager,
            ObjectReader: made.object("a").reader().raw,
            ObjectWriter: writer,
            Commit: made.get_commit(),
            Change: change,
            CommonPrefix: CommonPrefix("a/"),
            ImportStatus: manager.run(),
            ObjectInfo: written.stat(),
            RepositoryProperties: lake.properties,
        }
        assert set(objects) == set(MEMBERS)
        for kind, names in MEMBERS.items():
            assert isinstance(objects[kind], kind)
            lacking = {name for one in kind.__mro__ for name in MISSING.get(one.__name__, {})}
            for name in names:
                if name in lacking:
                    with pytest.raises(UnsupportedError, match=f"{kind.__name__} has no {name}: .*;"):
                        getattr(objects[kind], name)
                else:
                    # `closed` files have some members that raise; whether they are there is asked of the class.
                    assert hasattr(kind, name) or hasattr(objects[kind], name), f"{kind.__name__}.{name}"
            assert not hasattr(objects[kind], "nothing")


@pytest.mark.parametrize("name", sorted(MISSING["TransactionBranch"]))
def test_a_transactions_branch_does_nothing_to_the_branch_itself(name: str, lake: Repository) -> None:
    before = lake.branch("main").get_commit()
    with lake.branch("main").transact("t") as tx:
        tx.object("a").upload("1")
        with pytest.raises(UnsupportedError, match=r"TransactionBranch has no .*repository\.branch"):
            getattr(tx, name)
        assert hasattr(Branch, name)
    assert lake.branch("main").get_commit().parents == (before.id,)


def test_a_transactions_branch_merges_nothing_and_looks_for_conflicts(lake: Repository) -> None:
    lake.branch("dev").create("main")
    with lake.branch("main").transact("t") as tx:
        tx.object("a").upload("1")
        with pytest.raises(UnsupportedError, match="merge the branch when the block has ended"):
            tx.merge_into("dev")
        assert tx.conflicts_with("dev") is None
        assert not isinstance(tx, Branch)
    assert lake.branch("main").merge_into("dev")


def test_conflicts_and_transactions_are_caught_by_the_sdks_names(lake: Repository) -> None:
    caught: list[Exception] = []
    main = lake.branch("main")
    try:
        main.create("main")
    except exceptions.ConflictException as error:
        caught.append(error)
    other = Repository(lake.uri).branch("main")
    try:
        with main.transact("late") as tx:
            tx.object("a").upload("1")
            other.object("a").upload("2")
            other.commit("first")
    except exceptions.TransactionException as error:
        caught.append(error)
    try:
        with main.transact("nothing new") as tx:
            tx.object("a").upload("2")
    except (KeyError, exceptions.TransactionException) as error:
        caught.append(error)
    assert [type(error) for error in caught] == [AlreadyExistsError, MergeConflictError, NoChangesError]
    for name in exceptions.__all__:
        # What `except` takes: a class, and no tuple of them.
        assert issubclass(getattr(exceptions, name), EskerError)
    for conflict in (AlreadyExistsError, CommitConflictError, MergeConflictError):
        assert issubclass(conflict, exceptions.ConflictException)
    for refusal in (CommitConflictError, MergeConflictError, NoChangesError):
        assert issubclass(refusal, exceptions.TransactionException)
    assert not issubclass(InvalidArgumentError, exceptions.ConflictException | exceptions.TransactionException)
    try:
        main.commit("nothing is staged")
    except exceptions.ConflictException:
        pytest.fail("no changes are no conflict")
    except exceptions.BadRequestException:
        pass
