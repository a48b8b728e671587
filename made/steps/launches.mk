steps_NAMES += llada-000
steps_NAMES += llama-000
steps_NAMES += ltm-000
steps_NAMES += llada-001
steps_NAMES += llama-001
steps_NAMES += ltm-001
