# tap.sh - TAP for shell tests; source it. A house check is a command that prints violations.
set -u
count=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ok STATUS TEXT: prints the result of a test; status 0 is good.
ok()
{
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failed=$((failed + 1))
    fi
}

# skip TEXT WHY: prints that a test was not tried.
skip()
{
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# clean TEXT COMMAND...: tests that the command prints nothing and succeeds.
clean()
{
    local text=$1 said
    shift
    if said=$("$@" 2>&1) && [ -z "$said" ]; then ok 0 "$text"; else
        ok 1 "$text"
        printf '%s\n' "$said" | sed 's/^/# /'
    fi
}

# caught PATTERN TEXT COMMAND...: tests that the command finds the planted fault and names it.
caught()
{
    local pattern=$1 text=$2 said
    shift 2
    said=$("$@" 2>&1)
    if printf '%s\n' "$said" | grep -q -- "$pattern"; then ok 0 "$text"; else
        ok 1 "$text"
        printf '# wanted %s, got: %s\n' "$pattern" "$said"
    fi
}

# plant FILE: standard input becomes a file of a small made-up tree, $scratch/FILE.
plant()
{
    mkdir -p "$scratch/$(dirname "$1")"
    cat >"$scratch/$1"
}

finish()
{
    echo "1..$count"
    [ "$failed" -eq 0 ]
    exit
}
