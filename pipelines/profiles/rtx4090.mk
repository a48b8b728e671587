# rtx4090 - one NVIDIA RTX 4090 (24 GB), 8B checkpoints in bf16. 16 GB are weights, so larger
# batches may run out of memory, which is a result.
include pipelines/profiles/gpu.mk
PROMPTS       := 64
SCALE_LENGTHS := 128,512,1024
SCALE_BATCH   := 1,2,4,8,16
SCALE_PROMPTS := 16
QUANT_BATCH   := 4
