# fast-dllm-1.5b - Fast-dLLM v2 1.5B (blocks of 32, parts of 8) against Qwen2.5 1.5B Instruct
LLADA        := Efficient-Large-Model/Fast_dLLM_v2_1.5B
LLAMA        := Qwen/Qwen2.5-1.5B-Instruct
JUDGE        := HuggingFaceTB/SmolLM3-3B-Base
GB           := 3.1 3.1 6.2
MEMORY       := 12
PROFILE      := cpu
GEN_LENGTH   := 128
BLOCK_LENGTH := 8
MASK_BLOCKS  := 1
STEPS        := 128
SWEEP        := --unmask dynamic --threshold 0.6,0.75,0.9,1
METHODS      := lookup
QUANT_STEPS  := 128
