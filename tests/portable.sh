# portable.sh - nothing that is shipped names one machine's folders or holds a secret.
. tests/house/tap.sh

clean "no path of a developer's machine, no secret" tests/house/portable .

w=work r=root h=home t=tmp
plant lib/good.c <<END
static char path[] = "/tmp/thing-XXXXXX";
/* /$t is where \$HOME/$w goes; a/$r/b, "$w/x", https://example.org/$w/page */
END
plant sub/good.mk <<<'results/$(FP)/tmp/x'
clean "ordinary text passes" tests/house/portable "$scratch"
printf 'x = "/%s/main/a"\n' "$w" | plant one.c
printf 'cd /%s && make\n' "$r" | plant two.sh
printf 'at /%s/anna/models\n' "$h" | plant three.md
printf 'open("/%s/mine.txt")\n' "$t" | plant four.c
printf -- '-----BEGIN RSA PRIVATE %s-----\n' KEY | plant five.txt
printf 'token=hf_%s\n' AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 | plant six.txt
for fault in one.c two.sh three.md four.c five.txt six.txt; do
    caught "^$fault:1:" "planted: $fault" tests/house/portable "$scratch"
done
finish
