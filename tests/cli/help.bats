#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# The help of the tools: --help, --help-all, the manual page and the completion all come from one
# table of options, and `make install` puts them where man and bash look.

load tool

setup() { enter; }

tools() { find "$BIN" -maxdepth 1 -type f -perm -u+x ! -name '*.so' -printf '%f\n' | sort; }
options()
{
    "$BIN/$1" --help-all | grep -oE '^ {2,6}(-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'
}

@test "every option of every tool is in its manual page and its completion" {
    for t in $(tools); do
        "$BIN/$t" --help-man | sed 's/\\-/-/g' > man
        "$BIN/$t" --help-completion > completion
        head -1 man | grep -q "^\.TH $t 1 "
        for o in $(options "$t"); do
            case $o in --help*|--version) continue ;; esac
            grep -qF -- "$o" man || { echo "$t: $o is not in the manual page"; return 1; }
            grep -qF -- " $o" completion || { echo "$t: $o is not completed"; return 1; }
        done
    done
    [ "$(tools | wc -l)" -ge 14 ]
}

# too_long HELP: prints its lines over 80 columns, and a line if it has more than 100 lines
too_long()
{
    awk 'length > 80 { print FILENAME ": over 80 columns: " $0 }
         END { if (NR > 100) print FILENAME ": " NR " lines, limit 100" }' "$1"
}

@test "--help begins with examples and takes two screens of 80 columns" {
    for t in $(tools); do
        "$BIN/$t" --help > "$t"
        "$BIN/$t" --help-all > "$t-all"
        [ "$(sed -n '/^$/,$p' "$t" | sed -n 2p)" = "Examples:" ] || { head -3 "$t"; return 1; }
        [ -z "$(too_long "$t")" ] || { too_long "$t"; return 1; }
        [ "$(grep -cE '^ {2,6}(-[a-z], )?--' "$t")" -le 40 ]
        [ "$(wc -l < "$t-all")" -ge "$(wc -l < "$t")" ]
        run awk 'length > 80 { print FILENAME ": " $0 }' "$t-all"
        [ -z "$output" ] || { echo "$output"; return 1; }
    done
    { cat gen-llama; seq 100; printf '%081d\n' 0; } > planted
    [ "$(too_long planted | wc -l)" -eq 2 ]
}

# riddles MANUAL: prints helps that need the name of the option, or another line, to be understood
riddles()
{
    local words='of|what|who|whose|that|those|than|by|at|and|or|their|its|it|he|his|see|likewise'
    sed -E 's/\\([-e&])/\1/g' "$1" | awk -v file="$1" -v words="^($words|the same)([^a-z]|\$)" '
        /^\.TP/ { getline name; getline
            if (NF < 2 || /^[(]/ || tolower($0) ~ words) print file ": " name ": " $0 }'
}

@test "each help line can be read alone; a planted riddle is found" {
    for t in $(tools); do
        "$BIN/$t" --help-man > "$t"
        [ -z "$(riddles "$t")" ] || { riddles "$t"; return 1; }
    done
    printf '.TP\n%s\n%s\n' threads 'of the processor (0)' model 'what is run' size bytes > planted
    [ "$(riddles planted | wc -l)" -eq 3 ]
}

@test "--help leaves out rare options and groups; --help-all shows all of them" {
    "$BIN/gen-llada" --help > short
    "$BIN/gen-llada" --help-all > all
    for o in model steps gen-length unmask cache batch device quant output; do
        grep -qE -- "--$o[= ]" short
    done
    run ! grep -q -- '--slowfast-reach' short
    grep -q -- '--slowfast-reach' all
    run ! grep -q '^Exit: 0 done' short
    grep -q '^Exit: 0 done' all
}

@test "help shows a long list of values in full" {
    "$BIN/gen-llada" --help > help
    tr -d ' \n' < help | grep -qE -- '--unmask=schedule[|][a-z_|]*wino[a-z_|]*'
    grep -qE -- '--unmask=schedule.*[|]$' help # in several lines
}

@test "a list of values is completed from the table of settings" {
    "$BIN/gen-llada" --help-completion > completion
    run bash -c '. ./completion; COMP_WORDS=(gen-llada --unmask thr); COMP_CWORD=2; _gen_llada
                 echo "${COMPREPLY[*]}"
                 COMP_WORDS=(gen-llada --block-l); COMP_CWORD=1; _gen_llada; echo "${COMPREPLY[*]}"'
    [ "${lines[0]}" = threshold ]
    [ "${lines[1]}" = "--block-length" ]
}

@test "lines of text that begin with a dot or hold a backslash survive troff" {
    "$BIN/prep-prompts" --help-man > man
    [ -z "$(grep -E '^\.[a-z]' man | grep -vxE '\.(nf|fi)')" ] # requests of troff, ours alone
    grep -qF 'packed as .gz' <(sed 's/\\&//g' man)
    grep -qF '\er\en' man
}

@test "install writes tools, pages and completion; uninstall takes them away" {
    make -C "$ROOT" install uninstall -n BUILD="${BIN%/bin}" DESTDIR="$PWD/to" PREFIX=/usr > said
    grep -q "$PWD/to/usr/share/man/man1" said
    grep -q "$PWD/to/usr/share/bash-completion/completions" said
    grep -q "rm -f .*gen-llada.1" said
}

# Compares the settings that a generator's help lists with the settings in its records. Records have
# the template among their conditions.
in_help() { sed -n '/^Decoding (/,/^Other names/p' "$1" |
    sed -nE 's/^ {2,6}(-[a-z], )?--([a-z0-9-]+)(=|\[=).*/\2/p' | tr - _ |
    grep -vx chat | sort; }
in_record()
{
    jq -r 'keys_unsorted | .[index("threads") + 1:index("weights")][]' "$1" | sort
}

agree() { # HELP RECORD
    local one
    one=$(comm -3 <(in_help "$1") <(in_record "$2"))
    [ -z "$one" ] || { echo "only on one side: $one"; return 1; }
}

@test "help and records have the same settings; a planted difference is found" {
    echo '{"id":"p","prompt_ids":[5,6,7]}' > prompt
    for t in gen-llama:tiny-llama gen-llada:tiny-llada gen-ltm:tiny-ltm; do
        tool=${t%:*}
        "$BIN/$tool" --help-all > help
        [ $tool = gen-llada ] || sed -i 's/--gen-length=/--max-new=/' help # max_new in records
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
    find "$ROOT/pipelines" -name '*.mk' -exec grep -h ' ##' "$ROOT/Makefile" {} + > targets
    run ! grep -vE ' ##(run|look|build|develop) [a-zA-Z]' targets # a group that help leaves out
    make -s -C "$ROOT" CUDA=0 help > said
    for n in 1 2 3 4 5 6 7; do grep -q "^  phase$n " said; done
    grep -q "^Profiles" said
    for p in "$ROOT"/pipelines/profiles/*.mk; do
        grep -qE "^  $(basename "$p" .mk) +[^ ].*[a-z]{3}" said # and what it takes
    done
    run make -C "$ROOT" CUDA=0 phase1 PROFILE=nope
    [ "$status" -ne 0 ]
    [[ $output == *"PROFILE=nope: expected one of"*quick* ]]
}

@test "a misspelt word is answered with the nearest word; numbers must be complete" {
    said() { # WORDS COMMAND...
        run -64 "${@:2}"
        [ "${#lines[@]}" -eq 1 ] && [[ $output == *"$1"* ]] || { echo "$output"; return 1; }
    }
    said "unknown option '--sed' (did you mean --seed?)" "$BIN/gen-llama" --sed 3
    said "'--gen-lenght=8' (did you mean --gen-length?)" "$BIN/gen-llada" --gen-lenght=8
    said "got 'alwasy' (did you mean always?)" "$BIN/measure" --progress alwasy
    echo '{"id":"p","prompt_ids":[5]}' > prompt
    said "got 'schedule,treshold' (did you mean threshold?)" \
        "$BIN/gen-llada" -m synth:tiny-llada --unmask schedule,treshold prompt
    said "from 0 to 9007199254740991, got '-1'" "$BIN/measure" --seed -1
    run -64 "$BIN/gen-llama" --xyzzy
    [[ $output != *"did you mean"* ]]
    echo '{"kind":"launch","system":"llada","launch":0,"rounds":1,
"points":[{"unmask":"treshold"}]}' | tr -d '\n' > plan
    run -65 "$BIN/gen-llada" -m synth:tiny-llada --schedule plan --launch 0 prompt
    [[ $output == *'got "treshold" (did you mean threshold?)'* ]]
}

@test "--version names version and commit; with -v each linked library with its version" {
    for tool in prep-prompts gen-llama; do
        [ "$("$BIN/$tool" --version | wc -l)" -eq 1 ]
        for order in "--version -v" "--verbose --version"; do
            "$BIN/$tool" $order > said
            for name in jansson PCRE2 utf8proc zlib libarchive OpenSSL; do
                [ "$(grep -c "^$name [0-9]" said)" -eq 1 ]
            done
        done
    done
}

@test "messages quote the wrong value without control characters" {
    printf '%s\n' \
        '{"kind":"generation","id":"a","config":"m","e2e_ns":"\u009b31m\u202e","new_tokens":3}' \
        '{"kind":"generation","id":"b","config":"m","phase":"\u001b[31m\u009b\u2066é"}' \
        $'\xff\xfe{' > bad
    run --separate-stderr "$BIN/measure" --max-failed 3 bad
    [[ $stderr == *'e2e_ns: expected a number from 1 to 9007199254740992, got a text'* ]]
    [[ $stderr == *'\x1b[31m\xc2\x9b\xe2\x81\xa6é'* ]]
    printf '%s\n' "$stderr" > said
    local c0='[\x00-\x08\x0b-\x1f\x7f\xff]' c1='\xc2[\x80-\x9f]'
    local marks='\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]'
    [ "$(LC_ALL=C grep -cP "$c0|$c1|$marks" said)" -eq 0 ]
    LC_ALL=C grep -qP "$c1" <(printf '\302\233\n') # the check itself finds one
}

@test "bootstrap installs the packages of the tests only for tests" {
    mkdir path
    for c in sh dirname; do ln -s "$(command -v $c)" path/; done
    printf '#!/bin/sh\n' > path/apt-get
    chmod +x path/apt-get
    run -1 env PATH="$PWD/path" "$ROOT/bootstrap" --check test
    [[ $output == *" strace"* && $output == *" libxml2-utils"* ]]
    run -1 env PATH="$PWD/path" "$ROOT/bootstrap" --check
    [[ $output == *" jq"* && $output != *strace* ]]
}

@test "make dist gives the same bytes twice and unpacks to sources that know their commit" {
    command -v git > said && git -C "$ROOT" rev-parse HEAD > head || skip "no git repository"
    git clone -q -s --no-checkout "$ROOT" clone
    git -C clone sparse-checkout set --cone lib/base pipelines tools > said 2>&1 ||
        skip "git without sparse checkouts"
    git -C clone checkout -q
    for name in one two; do
        make -s -C clone CUDA=0 dist
        mv clone/build/crossover-*.tar.gz $name
    done
    cmp one two
    tar -xf one
    [ "$(find crossover-* -name '*.c' | wc -l)" -eq "$(git -C "$ROOT" ls-files '*.c' | wc -l)" ]
    said=$(env GIT_CEILING_DIRECTORIES="$PWD" make -s -C crossover-* CUDA=0 print-COMMIT)
    [[ ${#said} -ge 7 && $(cat head) == "$said"* ]]
}

@test "the build uses the hardening options that the compiler knows" {
    printf '#!/bin/sh\ncat > /dev/null\n' > cc-all
    printf '#!/bin/sh\ncat > /dev/null\ncase $* in *SOURCE=3*|*clash*) exit 1 ;; esac\n' > cc-old
    chmod +x cc-all cc-old
    run make -s -C "$ROOT" CUDA=0 CC="$PWD/cc-all" SAN= print-HARDEN
    [[ $output == *SOURCE=3*clash-protection*cf-protection* ]]
    run make -s -C "$ROOT" CUDA=0 CC="$PWD/cc-old" SAN= print-HARDEN
    [[ $output == *SOURCE=2*cf-protection* && $output != *clash* ]]
}
