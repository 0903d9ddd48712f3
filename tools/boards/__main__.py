"""`python -m tools.boards`: write the boards of ops/dashboards/boards/."""

from tools.boards.render import write

if __name__ == "__main__":
    write()
