# llada2.1-mini - LLaDA2.1 mini, which edits its tokens, against Ling mini 2.0: the same block
include pipelines/pairs/llada2-mini.mk
LLADA        := inclusionAI/LLaDA2.1-mini
SWEEP        := --unmask joint --threshold 0.5,0.7,0.85,0.95 --edit-threshold 0.5
METHODS      := joint-quality joint-speed lookup
