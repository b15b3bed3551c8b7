"""The methods of `LanceDataset` for key-values: config, table metadata, and metadata of the schema and its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._native.table import Manifest
from ..exceptions import InvalidArgumentError, InvalidTypeError, of_changes
from ..lance.change.key_metadata import check_key_metadata
from ..lance.change.run import commit_change
from ..lance.handle import DatasetHandle
from ..lance.operation import LanceOperation

_MAX_FIELD_ID = "esker.max_field_id"
"""The config key under which esker keeps the highest field id ever assigned, so that no id is used twice."""


class SettingsApi(DatasetHandle):
    """The methods of `LanceDataset` that read and change key-values."""

    def config(self) -> dict[str, str]:
        """The table's config: settings for writers. Without esker's own entry for field ids."""
        return {key: value for key, value in self._table.manifest.config.items() if key != _MAX_FIELD_ID}

    @property
    def metadata(self) -> dict[str, str]:
        """The table's metadata: free key-values of the user."""
        return self._table.manifest.table_metadata

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The metadata of the schema."""
        return {key: value.decode() for key, value in self._table.manifest.schema.metadata.items()}

    def update_config(self, values: dict[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Sets entries of the config, and removes those whose value is None.

        Args:
            values: Entries by key.
            replace: Whether entries that are not in `values` are removed.

        Returns:
            The whole config after the change.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-config")
            >>> dataset.update_config({"owner": "me"})
            {'owner': 'me'}
        """
        _check(values)
        change = LanceOperation.UpdateMap(dict(values), replace)
        self._update(lambda _: LanceOperation.UpdateConfig(config_updates=change))
        return self.config()

    def delete_config_keys(self, keys: list[str]) -> None:
        """Removes entries of the config; missing ones are no error."""
        self.update_config(dict.fromkeys(keys))

    def update_metadata(self, values: dict[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Sets key-values of the table, and removes those whose value is None. See `update_config`."""
        _check(values)
        change = LanceOperation.UpdateMap(dict(values), replace)
        self._update(lambda _: LanceOperation.UpdateConfig(table_metadata_updates=change))
        return self.metadata

    def update_schema_metadata(self, values: dict[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Sets key-values of the schema, and removes those whose value is None. See `update_config`."""
        _check(values)
        change = LanceOperation.UpdateMap(dict(values), replace)
        self._update(lambda _: LanceOperation.UpdateConfig(schema_metadata_updates=change))
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: dict[str, str]) -> None:
        """Replaces all key-values of the schema."""
        _check(new_metadata)
        self.update_schema_metadata(dict(new_metadata), replace=True)

    @of_changes()
    def update_field_metadata(self, field_updates: dict[str, dict[str, str | None]], *, replace: bool = False) -> None:
        """Sets key-values of columns, and removes those whose value is None.

        Args:
            field_updates: Key-values by the dotted path of a column.
            replace: Whether other key-values of these columns are removed.

        Raises:
            InvalidChangeError: The table does not have a column, or its declared key would change.

        Example:
            >>> import esker, pyarrow as pa
            >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-field-metadata")
            >>> dataset.update_field_metadata({"id": {"unit": "m"}})
            >>> dataset.schema.field("id").metadata
            {b'unit': b'm'}
        """
        for values in field_updates.values():
            _check(values)

        def make(manifest: Manifest) -> LanceOperation.BaseOperation:
            schema = manifest.schema
            changes: dict[int, LanceOperation.UpdateMap] = {}
            for path, values in field_updates.items():
                field = schema.find(path)
                if field is None:
                    names = ", ".join(top.name for top in schema.fields)
                    raise InvalidArgumentError(
                        f"Field {path!r} not found: expected a column of the table ({names})", column=path
                    )
                check_key_metadata(schema, path, values, replace=replace)
                changes[field.id] = LanceOperation.UpdateMap(dict(values), replace)
            return LanceOperation.UpdateConfig(field_metadata_updates=changes)

        self._update(make)

    def replace_field_metadata(self, field_name: str, new_metadata: dict[str, str]) -> None:
        """Replaces all key-values of one column. See `update_field_metadata`."""
        _check(new_metadata)
        self.update_field_metadata({field_name: dict(new_metadata)}, replace=True)

    def _update(self, make: Callable[[Manifest], LanceOperation.BaseOperation]) -> None:
        self._move_to(commit_change(self._table, make))


def _check(values: Any) -> None:
    if not isinstance(values, Mapping):
        raise InvalidTypeError(f"expected key-values as a dict, found {type(values).__name__}")
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str | None):
            raise InvalidTypeError(f"expected key-values as str, found {key!r}: {value!r}")
