# illada-8b - iLLaDA 8B Instruct against LLaMA 3 8B Instruct: the same block, another way to write
include pipelines/pairs/llada-8b.mk
LLADA        := GSAI-ML/iLLaDA-8B-Instruct
GB           := 15 16 24
METHODS      := threshold grow lookup
