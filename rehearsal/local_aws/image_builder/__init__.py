"""EC2 Image Builder: resource types, builds and API."""
