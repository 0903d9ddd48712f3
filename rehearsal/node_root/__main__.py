"""`python -m rehearsal.node_root`: make the base system of throw-away machines, or print why it cannot."""

import sys

from rehearsal.node_root.base import NoRootError, make_base

if __name__ == "__main__":
    try:
        print(make_base(lambda text: print(f"node root: {text}", file=sys.stderr)))
    except NoRootError as error:
        sys.exit(str(error))
