"""Arrow batches with the columns and types that Spark wants of a data source in Python."""

from collections.abc import Mapping

import pyarrow as pa


def fitted(columns: Mapping[str, pa.Array], rows: int, wanted: pa.Schema) -> pa.RecordBatch:
    """Make a batch of the wanted columns, cast to their types. A column that is not there is null."""
    arrays = [
        columns[one.name].cast(one.type) if one.name in columns else pa.nulls(rows, one.type)
        for one in wanted
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)
