# rtx4090 - one NVIDIA RTX 4090 (24 GB), 8B checkpoints in bf16. Larger batches may end in oom,
# which is a result.
include pipelines/profiles/gpu.mk
SCALE_BATCH := 1,2,4,8
