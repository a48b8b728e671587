# h200 - one NVIDIA H200 (141 GB), 8B checkpoints in bf16.
include pipelines/profiles/gpu.mk
