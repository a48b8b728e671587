# qwen3-0.6b-bd3lm - Qwen3 0.6B against its conversion to block diffusion by dllm (blocks of 32)
include pipelines/pairs/qwen3-0.6b.mk
LLADA        := dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1
# number formats are compared by a likelihood bound, which models with blocks do not have
QUANTS       :=
LIKELIHOOD_PROMPTS := 0
