# a100 - one NVIDIA A100 (80 GB), 8B checkpoints in bf16. It has no fp8.
include pipelines/profiles/gpu.mk
QUANTS := int8 nf4
