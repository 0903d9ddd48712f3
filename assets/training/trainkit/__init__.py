"""What every trainer needs and none should write again: the standard library, torch only where it must."""
