# faults.bash - makes files for faults.bats and faults-machine.bats: two trained models, prompts,
# answers
setup_file()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export BIN=${BIN:-build/bin} ROOT=$PWD
    BIN=$(cd "$BIN" && pwd)
    cd "$BATS_FILE_TMPDIR" || exit 1
    "$BIN/write-corpus" --count 40 --seed 1 -o corpus
    for arch in llada llama; do
        "$BIN/train-lm" -q --arch $arch --out $arch --width 16 --layers 1 --heads 2 --kv-heads 2 \
            --ffn 16 --vocab 300 --context 256 --steps 6 --rows 64 --min-len 16 --max-len 32 \
            --threads 1 --dtype F32 corpus > $arch.loss
    done
    head -n 3 corpus > prompts
    "$BIN/gen-llama" -m llama --max-new 6 --threads 1 prompts > generations
}
