# quick - does everything work? The embedded trio, under a minute; too few launches for intervals.
PROMPT_CHOICE := --per-task 6
STEPS         := 4,16,64
GEN_LENGTH    := 64
BLOCK_LENGTH  := 32
LAUNCHES      := 2
AA_LAUNCHES   := 4
AA_LENGTH     := 16
SCALE_LENGTHS := 32
SCALE_BATCH   := 1,4
SCALE_LAUNCHES := 1
SCALE_PROMPTS := 4
BASELINE_PROMPTS := 2
BASELINE_LENGTH := 16
LIKELIHOOD_PROMPTS := 6
LIKELIHOOD_SAMPLES := 8
LIKELIHOOD_ORDERS := 1
