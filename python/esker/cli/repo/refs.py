"""`esker repo create|delete|branch|tag|protect|merge|revert|cherry-pick|reset`: where refs lead."""

from __future__ import annotations

import argparse

from ...exceptions import InvalidArgumentError, NotFoundError
from ..amount import amount
from ..output import Output
from .command import Commands, add_commit_options, open_repository, pairs, tell
from .merge_plan import show_conflicts, show_plan


def add_commands(commands: Commands) -> None:
    """Adds the commands."""
    made = commands.add("create", "Creates a repository.", create, "URI")
    made.add_argument("--branch", default="main", help="its default branch (main)")
    made.add_argument("--meta", action="append", default=[], metavar="KEY=VALUE", help="of the repository")
    gone = commands.add("delete", "Deletes a repository: its refs, commits and settings. Objects stay.", delete, "URI")
    gone.add_argument("--yes", action="store_true", help="really")
    branch = commands.add("branch", "Lists branches, or creates one, or deletes one.", branches, "URI", "[NAME]")
    tag = commands.add("tag", "Lists tags, or creates one, or deletes one.", tags, "URI", "[NAME]")
    for ref in (branch, tag):
        ref.add_argument("--source", help="the ref to create it at")
        ref.add_argument("--delete", action="store_true")
        ref.add_argument("--prefix", help="list those whose names start so")
    protect = commands.add("protect", "Lists protected branches, or protects more.", protect_of, "URI", "[PATTERN]")
    protect.add_argument("--delete", action="store_true", help="protect them no longer")
    merge = commands.add("merge", "Merges a ref into a branch.", merge_of, "URI", "SOURCE", "DESTINATION")
    add_commit_options(merge)
    merge.add_argument("--strategy", choices=["source-wins", "dest-wins"])
    merge.add_argument("--squash", action="store_true", help="leave the source's commits out of the history")
    merge.add_argument("--allow-empty", action="store_true", help="commit even if nothing changes")
    merge.add_argument("--dry-run", action="store_true", help="only look for conflicts")
    merge.add_argument("--plan", action="store_true", help="only show what it would do, tables and paths")
    revert = commands.add("revert", "Takes back on a branch what a commit did.", revert_of, "URI", "BRANCH", "REF")
    pick = commands.add("cherry-pick", "Does again on a branch what a commit did.", pick_of, "URI", "BRANCH", "REF")
    for again in (revert, pick):
        again.add_argument(
            "--parent-number", type=amount, default=0, metavar="N", help="for a merge: which side counts"
        )
        again.add_argument("--allow-empty", action="store_true", help="commit even if nothing changes")
    commands.add("reset", "Lets a branch lead to another commit.", reset, "URI", "BRANCH", "REF")


def create(options: argparse.Namespace, output: Output) -> None:
    """Creates a repository."""
    from ...repo import Repository

    made = Repository.create(
        options.uri,
        default_branch=options.branch,
        storage_options=pairs(options.storage_option, "--storage-option") or None,
        metadata=pairs(options.meta, "--meta"),
    )
    tell(output, {"uri": made.uri, "id": made.id, "default_branch": made.default_branch})


def delete(options: argparse.Namespace, output: Output) -> None:
    """Deletes a repository."""
    repo = open_repository(options)
    if not options.yes:
        raise InvalidArgumentError(f"the history of {repo.uri} would be gone for good; say --yes")
    repo.delete()
    tell(output, {"deleted": repo.uri})


def branches(options: argparse.Namespace, output: Output) -> None:
    """Lists branches, creates one, or deletes one."""
    repo = open_repository(options)
    if options.name is None:
        names = {branch.id: branch.get_commit().id for branch in repo.branches(prefix=options.prefix)}
        _names(output, names)
    elif options.delete:
        repo.branch(options.name).delete()
    else:
        repo.branch(options.name).create(options.source or repo.default_branch)


def tags(options: argparse.Namespace, output: Output) -> None:
    """Lists tags, creates one, or deletes one."""
    repo = open_repository(options)
    if options.name is None:
        _names(output, {tag.id: tag.get_commit().id for tag in repo.tags(prefix=options.prefix)})
    elif options.delete:
        repo.tag(options.name).delete()
    else:
        repo.tag(options.name).create(options.source or repo.default_branch)


def _names(output: Output, names: dict[str, str]) -> None:
    if output.as_json:
        output.json(names)
    else:
        output.table(None, [("name", False), ("commit", False)], ([name, id[:12]] for name, id in names.items()))


def protect_of(options: argparse.Namespace, output: Output) -> None:
    """Lists the patterns of protected branches, adds one, or removes one."""
    repo = open_repository(options)
    patterns = list(repo.settings.protected_branches)
    if options.pattern is not None:
        if options.delete and options.pattern not in patterns:
            raise NotFoundError(f"expected a pattern among {patterns}, found {options.pattern!r}")
        patterns = [pattern for pattern in patterns if pattern != options.pattern]
        if not options.delete:
            patterns.append(options.pattern)
        repo.change_settings(protected_branches=tuple(patterns))
    if output.as_json:
        output.json(patterns)
    else:
        for pattern in patterns or ["no branch is protected"]:
            output.line(pattern)


def merge_of(options: argparse.Namespace, output: Output) -> None:
    """Merges a ref into a branch, or shows what that would do; conflicts are listed with what all three sides have."""
    from ...repo import MergeConflictError

    source = open_repository(options).ref(options.source)
    if options.plan:
        show_plan(source.merge_plan(options.destination, strategy=options.strategy), output)
        return
    try:
        id = source.merge_into(
            options.destination,
            message=options.message or None,
            metadata=pairs(options.meta, "--meta"),
            strategy=options.strategy,
            squash_merge=options.squash,
            allow_empty=options.allow_empty,
            dry_run=options.dry_run,
        )
    except MergeConflictError as error:
        show_conflicts(error, output)
        raise
    tell(output, {"commit": id})


def revert_of(options: argparse.Namespace, output: Output) -> None:
    """Takes back on a branch what a commit did."""
    branch = open_repository(options).branch(options.branch)
    made = branch.revert(options.ref, options.parent_number, allow_empty=options.allow_empty)
    tell(output, {"commit": made.id})


def pick_of(options: argparse.Namespace, output: Output) -> None:
    """Does again on a branch what a commit did."""
    branch = open_repository(options).branch(options.branch)
    made = branch.cherry_pick(options.ref, options.parent_number, allow_empty=options.allow_empty)
    tell(output, {"commit": made.id})


def reset(options: argparse.Namespace, output: Output) -> None:
    """Lets a branch lead to another commit."""
    tell(output, {"commit": open_repository(options).branch(options.branch).reset_to(options.ref).id})
