"""LoRA in each of titan's models, in titan's own environment: it is built, and its export computes the same.

python titan_lora.py: prints the greatest difference of the logits before and after the merge, of all models.
"""

# mypy: disable-error-code="import-not-found"
import cpu  # of titan
import torch

cpu.install()

from config import model_of  # noqa: E402
from exporting import merge_lora  # noqa: E402
from settings import Settings  # noqa: E402
from torchtitan.trainer import Trainer  # noqa: E402

SIZES = {
    "llama3": "debugmodel",
    "qwen3": "debugmodel",  # its head is the embedding
    "qwen3 moe": "debugmodel_moe",
    "deepseek_v3": "debugmodel",
    "gpt_oss": "debugmodel",
}


def build(model: str, size: str) -> torch.nn.Module:
    """Build a model with LoRA, whose second matrices are not zero any more."""
    spec = model_of(Settings(model=model, size=size, lora_rank=4, device="cpu"), None)
    config = Trainer.Config(model_spec=spec)
    config.training.seq_len = 64
    spec.model.update_from_config(config=config)
    built = spec.model.build()
    with torch.no_grad():
        built.init_weights(buffer_device=None)
        for name, parameter in built.named_parameters():
            if ".lora_b." in name:
                parameter.normal_(std=0.1)
    return built.eval()


def logits_of(model: torch.nn.Module) -> torch.Tensor:
    """Return the logits of some tokens."""
    tokens = torch.arange(64).reshape(1, 64) * 7 % 500
    positions = torch.arange(64).reshape(1, 64)
    masks = model.get_attention_masks(positions=positions)
    with torch.no_grad():
        return model(tokens, positions=positions, attention_masks=masks)


def main() -> None:
    """Compare the logits of each model."""
    # torchtitan's experts compute in bf16, whose rounding gives some tokens other experts in the next layer.
    torch.Tensor.bfloat16 = torch.Tensor.float
    torch.manual_seed(1)
    found = 0.0
    for name, size in SIZES.items():
        model = build(name.split()[0], size)
        trained = [each for each, parameter in model.named_parameters() if parameter.requires_grad]
        assert trained, name
        assert all(".lora_" in each for each in trained), name
        if name == "gpt_oss":  # its attention does not compute on CPUs
            continue
        before = logits_of(model)
        merge_lora([model])
        found = max(found, float((logits_of(model) - before).abs().max()))
    print(found)


if __name__ == "__main__":
    main()
