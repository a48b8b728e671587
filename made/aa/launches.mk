aa_NAMES += llada-000
aa_NAMES += llama-000
aa_NAMES += llada-001
aa_NAMES += llama-001
