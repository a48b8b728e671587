# runner.sh - tests that tests/run counts the results of TAP programs and notices missing results.
. tests/house/tap.sh

# says COUNTS STATUS TEXT PROGRAM: tests the last line and the exit status of tests/run for a
# program.
says()
{
    local want=$1 status=$2 text=$3 program=$scratch/$4 said got=0
    said=$(BUILD=$scratch/build TEST_TIMEOUT=2 tests/run "$program" 2>&1) || got=$?
    [ "$(tail -n 1 <<<"$said")" = "$want" ] && [ "$got" -eq "$status" ]
    ok $? "$text: $want"
}

plant good.sh <<<'echo 1..2; echo "ok 1 - a"; echo "ok 2 # skip no device"'
plant bad.sh <<<'echo "ok 1"; echo "not ok 2 - b"; echo 1..2; exit 1'
plant crash.sh <<<'echo "ok 1"; kill -SEGV $$'
plant short.sh <<<'echo 1..3; echo "ok 1"'
plant planless.sh <<<'echo "ok 1"'
plant slow.sh <<<'echo 1..1; echo "ok 1"; sleep 30'
plant none.sh <<<'echo "1..0 # SKIP nothing here"'
plant cli.bats <<<'@test "truth" { true; }'
says "1 passed, 0 failed, 1 skipped" 0 "a good program" good.sh
says "1 passed, 1 failed" 1 "a failing test" bad.sh
says "1 passed, 1 failed" 1 "a crash" crash.sh
says "1 passed, 1 failed" 1 "fewer tests than planned" short.sh
says "1 passed, 1 failed" 1 "no plan" planless.sh
says "1 passed, 1 failed" 1 "too slow" slow.sh
says "0 passed, 0 failed, 1 skipped" 1 "nothing at all was run" none.sh
says "0 passed, 1 failed" 1 "a program that is not there" absent.sh
for reason in 'no device' 'nothing here'; do
    BUILD=$scratch/build tests/run "$scratch"/{good,none}.sh 2>&1 | grep -q "1 skipped: $reason$"
    ok $? "a skip is said aloud at the end: $reason"
done
plant long <<<'9.0 5.0 slower.sh
8.0 4.0 tests/slow.sh'
plant build/tests/slow.sh <<<'echo 1..1; echo "ok 1"; for ((i = 0; i < 100000; i++)); do :; done'
plant slower.sh <<<'echo 1..1; echo "ok 1"; sleep 0.3'
order=$(cd "$scratch" && BUILD=build TEST_JOBS=1 LONGEST=long "$OLDPWD/tests/run" \
    good.sh build/tests/slow.sh slower.sh 2>&1 | grep -o '[a-z]*\.sh \.\.' | tr -d '\n')
[ "$order" = 'slower.sh ..slow.sh ..good.sh ..' ]
ok $? "those that take long begin first: $order"
read -r cpu wall name <"$scratch/build/tap/times"
[ "$name" = tests/slow.sh ] && awk "BEGIN { exit !($cpu > 0.05 && $wall >= $cpu / 2) }" &&
    grep -qE '^ +0\.0 +0\.[3-9] slower.sh$' "$scratch/build/tap/times"
ok $? "times of each program: $cpu s of the processor, $wall s"
while read -r _ _ name; do
    [ -e "$name" ] || [ -e "$name.c" ] || [ -e "$name.cu" ] || echo "$name"
done <tests/longest >"$scratch/gone"
[ -s tests/longest ] && [ ! -s "$scratch/gone" ]
ok $? "tests/longest names tests: $(cat "$scratch/gone")"
if printf '%s\n' 'Bats 1.5' "$(bats --version)" | sort -CV; then
    says "1 passed, 0 failed" 0 "bats" cli.bats
else
    says "0 passed, 0 failed, 1 skipped" 1 "an old bats" cli.bats
fi
finish
