# h100 - one NVIDIA H100 (80 GB), 8B checkpoints in bf16.
include pipelines/profiles/gpu.mk
