length-32_NAMES += llada-000
length-32_NAMES += llama-000
length-32_NAMES += ltm-000
