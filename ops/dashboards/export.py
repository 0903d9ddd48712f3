"""Writes dashboards as files, for Amazon Managed Grafana or your own Grafana."""

from pathlib import Path

from ops.usage import OpsError

BOARDS = Path(__file__).with_name("boards")


def export(folder: Path) -> list[Path]:
    """Write all dashboards to a folder, replace existing ones, and return the files.

    Raises:
        OpsError: the folder cannot be written.
    """
    found = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for board in sorted(BOARDS.glob("*.json")):
            target = folder / board.name
            target.write_bytes(board.read_bytes())
            found.append(target)
    except OSError as error:
        raise OpsError(
            f"{folder} cannot be written: {error.strerror}.\n  type:   trainctl dashboards --export boards"
        ) from None
    return found
