# qwen3-0.6b-bd3lm - Qwen3 0.6B against its conversion to block diffusion by dllm (blocks of 32)
include pipelines/pairs/qwen3-0.6b.mk
LLADA        := dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1
MASK_BLOCKS  := 1
