# dream-7b - Dream 7B Instruct against Qwen2.5 7B Instruct, the model that it was made of
LLADA        := Dream-org/Dream-v0-Instruct-7B
LLAMA        := Qwen/Qwen2.5-7B-Instruct
JUDGE        := mistralai/Mistral-Nemo-Base-2407
GB           := 15 15 24
MEMORY       := 40
PROFILE      := gpu
BLOCK_LENGTH := 32
# the algorithm of the example in the authors' README
SWEEP        := --unmask schedule --pace timesteps --order entropy
METHODS      := lookup
