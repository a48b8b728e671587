# qwen3-0.6b - Qwen3 0.6B against its conversion to masked diffusion by dllm (full mask)
LLADA        := dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1
LLAMA        := Qwen/Qwen3-0.6B
JUDGE        := HuggingFaceTB/SmolLM3-3B-Base
GB           := 1.2 1.2 6.2
MEMORY       := 8
PROFILE      := cpu
BLOCK_LENGTH := 32
METHODS      := threshold lookup
