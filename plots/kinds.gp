# kinds.gp - latency by kind of prompt: medians, and bars up to the 95th percentile. LLaDA's blue
# darkens from point to point of its sweep.
longest = 0
do for [k = 1:series_count] {
    longest = strlen(series_name[k]) > longest ? strlen(series_name[k]) : longest
}
# Only short names fit beside the panel.
below = narrow || longest > 32
key_columns = longest > (narrow ? 22 : 48) ? 1 : (narrow || longest > 32 ? 2 : 3)
key_rows = int(ceil(series_count / (1.0 * key_columns)))
eval begin(below ? 6 + 0.43 * key_rows : (series_count > 12 ? 1.5 + 0.46 * series_count : 7))
# LLaDA's blue darkens from point to point of a sweep; methods look the same in all figures.
look(k) = series_fill[k]
mark(k) = is_plain(k) ? 7 : variant(series_kind[k], series_number[k])
open(k) = is_plain(k) ? 6 : hollow(series_kind[k], series_number[k])
wide = 0.8 / series_count
at(i, k) = i + (k - (series_count + 1) / 2.0) * wide
set grid noxtics
set xrange [0.45:kind_count + 0.55]
set xtics ()
do for [i = 1:kind_count] {set xtics add (kind_name[i] i)}
set logscale y 2
set ylabel 'end-to-end latency (ms)'
set tmargin 1.2
set xlabel 'kind of prompt'
stats $points using 2 nooutput name 'lo'
set yrange [lo_min / 1.3 : latency_hi * 1.3]
if (below) {
    set bmargin 4 + 1.3 * key_rows
    set key at screen 0.5, char (0.4 + 1.3 * key_rows) center top vertical maxrows key_rows \
        Left reverse samplen 0.8
} else {
    set key outside right top vertical Left reverse samplen 0.8 spacing 1.2 width -1
}
plot for [k = 1:series_count] $points index k - 1 using (at($1, k)):2:(0):($3 - $2) \
        with vectors heads size graph 0.006, 90 linecolor rgb look(k) linewidth 1.2, \
    for [k = 1:series_count] $points index k - 1 using (at($1, k)):2 with points \
        linecolor rgb look(k) pointtype mark(k) \
        pointsize (series_kind[k] == 1 ? 0.9 : 0.6) title series_name[k], \
    for [i = 1:tips(1)] $tips index 0 using (at($1, $3)):2:5 @tip
unset output
