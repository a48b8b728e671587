steps_NAMES += llada-000
steps_NAMES += llama-001
steps_NAMES += ltm-002
steps_NAMES += ltm-003
steps_NAMES += llama-004
steps_NAMES += llada-005
