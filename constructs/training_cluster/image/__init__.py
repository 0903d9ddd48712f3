"""The image of compute nodes: found, checked, or built by EC2 Image Builder."""
