#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# What a tool says of itself: --help, the manual page and the completion all come from one table of
# options, and `make install` puts them where man and bash look.

setup()
{
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    BIN=${BIN:-$ROOT/build/bin}
    BIN=$(cd "$ROOT" && cd "$BIN" && pwd)
    cd "$BATS_TEST_TMPDIR"
}

tools() { find "$BIN" -maxdepth 1 -type f -perm -u+x ! -name '*.so' -printf '%f\n' | sort; }
options() { "$BIN/$1" --help | grep -oE '^ +(-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'; }

@test "every option of every tool is in its manual page and its completion" {
    for t in $(tools); do
        "$BIN/$t" --help-man | sed 's/\\-/-/g' > man
        "$BIN/$t" --help-completion > completion
        head -1 man | grep -q "^\.TH $t 1 "
        for o in $(options "$t"); do
            case $o in --help|--version) continue ;; esac
            grep -qF -- "$o" man || { echo "$t: $o is not in the manual page"; return 1; }
            grep -qF -- " $o" completion || { echo "$t: $o is not completed"; return 1; }
        done
    done
    [ "$(tools | wc -l)" -ge 14 ]
}

@test "a list of values is completed from the table of settings" {
    "$BIN/gen-llada" --help-completion > completion
    run bash -c '. ./completion; COMP_WORDS=(gen-llada --unmask thr); COMP_CWORD=2; _gen_llada
                 echo "${COMPREPLY[*]}"
                 COMP_WORDS=(gen-llada --block); COMP_CWORD=1; _gen_llada; echo "${COMPREPLY[*]}"'
    [ "${lines[0]}" = threshold ]
    [ "${lines[1]}" = --block-length ]
}

@test "lines of text that begin with a dot or hold a backslash survive troff" {
    "$BIN/prep-prompts" --help-man > man
    ! grep -E '^\.[a-z]' man
    grep -qF 'Packed as .gz' <(sed 's/\\&//g' man)
    grep -qF '\er\en' man
}

@test "install: tools, pages, completion; uninstall takes them away" {
    make -C "$ROOT" install uninstall -n BUILD="${BIN%/bin}" DESTDIR="$PWD/to" PREFIX=/usr > said
    grep -q "$PWD/to/usr/share/man/man1" said
    grep -q "$PWD/to/usr/share/bash-completion/completions" said
    grep -q "rm -f .*gen-llada.1" said
}

# The settings that a generator's help lists, and those that a record has: between what ran and what
# the run was.
in_help() { sed -n '/^Decoding/,/^Model and machine/p' "$1" |
    sed -nE 's/^ +(-[a-z], )?--([a-z0-9-]+)(=|\[=).*/\2/p' | tr - _ | sort; }
in_record()
{
    jq -r 'keys_unsorted | .[index("threads") + 1:index("weights_random")][]' "$1" | sort
}

agree() { # HELP RECORD
    local one
    one=$(comm -3 <(in_help "$1") <(in_record "$2"))
    [ -z "$one" ] || { echo "only on one side: $one"; return 1; }
}

@test "settings in help and in records are the same ones; a planted difference is found" {
    echo '{"id":"p","prompt_ids":[5,6,7]}' > prompt
    for t in gen-llama:tiny-llama gen-llada:tiny-llada; do
        tool=${t%:*}
        "$BIN/$tool" --help > help
        "$BIN/$tool" -m "synth:${t#*:}" --no-meta prompt > record
        [ "$(in_record record | wc -l)" -ge 7 ]
        agree help record
        sed 's/--batch=/--batsh=/' help > planted
        run agree planted record
        [ "$status" -eq 1 ]
        [[ $output == *batsh* ]]
    done
}

@test "an output without a name is found before any work" {
    echo '{"id":"p","prompt_ids":[5,6,7]}' > prompt
    run -64 "$BIN/gen-llama" -m no/such/model -o '' prompt
    [[ $output == *"--output: expected the name of a file"* ]]
}

@test "make help lists the seven phases and the profiles; an unknown profile lists them too" {
    make -s -C "$ROOT" CUDA=0 help > said
    for n in 1 2 3 4 5 6 7; do grep -q "^  phase$n " said; done
    grep -q "^Profiles.* demo " said
    run make -C "$ROOT" CUDA=0 phase1 PROFILE=nope
    [ "$status" -ne 0 ]
    [[ $output == *"PROFILE=nope: expected one of"*quick* ]]
}
