"""Print the weight decay of the matrices in an optimizer's state: python weight_decay.py FILE."""

# mypy: disable-error-code="import-not-found"
import sys

import torch

print(torch.load(sys.argv[1], weights_only=True)["param_groups"][0]["weight_decay"])
