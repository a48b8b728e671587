aa_NAMES += llama-000
aa_NAMES += llama-001
aa_NAMES += llama-002
aa_NAMES += llama-003
