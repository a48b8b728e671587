# throughput.gp - tokens per second by batch size, as bars from zero. LLaDA's blue darkens with
# steps. The key beside the bars has one column, so the figure grows with the number of series.
longest = 0
do for [k = 1:series_count] {
    longest = strlen(series_name[k]) > longest ? strlen(series_name[k]) : longest
}
key_columns = longest > 22 ? 1 : 2
key_rows = int(ceil(series_count / (1.0 * key_columns)))
eval begin(narrow ? 6 + 0.43 * key_rows : (series_count > 12 ? 1.5 + 0.46 * series_count : 7))
set bars small
set grid noxtics
set xrange [0.45:batch_count + 0.55]
set xtics ()
do for [i = 1:batch_count] {set xtics add (sprintf('%g', batches[i]) i)}
bar = 0.84 / series_count
at(i, k) = i + (k - (series_count + 1) / 2.0) * bar
if (narrow) {
    set bmargin 4 + 1.3 * key_rows
    set key at screen 0.5, char (0.4 + 1.3 * key_rows) center top vertical maxrows key_rows \
        Left reverse samplen 0.8
} else {
    set key outside right top vertical Left reverse samplen 0.8 spacing 1.2 width -1
}
set tmargin 2
set title title
set ylabel rate_label
set xlabel 'batch size'
stats $points using 4 nooutput name 's'
set yrange [0:1.08 * s_max]
plot for [k = 1:series_count] $points index k - 1 \
        using (at($1, k)):($5 == 0 ? $2 : NaN):(bar * 0.94) with boxes \
        linecolor rgb series_fill[k] title series_name[k], \
    for [k = 1:series_count] $points index k - 1 \
        using (at($1, k)):($5 != 0 ? $2 : NaN):(bar * 0.94) with boxes \
        linecolor rgb series_fill[k] fillstyle empty border linecolor rgb series_fill[k], \
    for [k = 1:series_count] $points index k - 1 using (at($1, k)):3:(0):($4 - $3) \
        with vectors nohead linecolor rgb '#303030' linewidth 0.8, \
    for [i = 1:tips(1)] $tips index 0 using (at($1, $3) - bar / 2):(0):('[') @tip, \
    for [i = 1:tips(1)] $tips index 0 using (at($1, $3) + bar / 2):2:5 @tip
unset output
