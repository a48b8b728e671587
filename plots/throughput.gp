# throughput.gp - tokens per second by batch size, bars from zero. LLaDA's blue darkens with steps.
# The key beside the upper half is one column: each line wants its height.
eval begin(narrow ? 13 : series_count > 6 ? 6.2 + 0.8 * series_count : 11)
llada = 0
do for [k = 1:series_count] {if (series_kind[k] == 0) {llada = llada + 1}}
array fill[series_count]
seen = 0
do for [k = 1:series_count] {
    fill[k] = colour(series_kind[k])
    if (series_kind[k] == 0) {
        fill[k] = hex(blue(llada > 1 ? seen / (llada - 1.0) : 0.6))
        seen = seen + 1
    }
}
set bars small
set grid noxtics
set xrange [0.45:batch_count + 0.55]
set xtics ()
do for [i = 1:batch_count] {set xtics add (sprintf('%g', batches[i]) i)}
bar = 0.84 / series_count
at(i, k) = i + (k - (series_count + 1) / 2.0) * bar
widest = 0
do for [k = 1:series_count] {
    widest = strlen(series_name[k]) > widest ? strlen(series_name[k]) : widest
}
key_rows = ceil(series_count / 2.0)
right = narrow ? 1 : widest + 5
bottom = narrow ? 3.4 + 1.3 * key_rows : 3.4
set multiplot layout 2, 1 \
    margins char 10, char right, char bottom, char 1.8 spacing char 0, char 4.4
do for [p = 1:2] {
    set title (p == 1 ? 'tokens to the end of the text' : 'all slots filled')
    set ylabel 'tokens per second'
    c = p == 1 ? 2 : 5
    set yrange [*:*]
    stats $points using (column(c + 2)) nooutput name 's'
    set yrange [0:1.08 * s_max]
    unset key
    unset xlabel
    if (p == 1 && !narrow) {
        set key outside right top vertical Left reverse samplen 0.8 spacing 1.2 width -1
    }
    if (p == 2) {set xlabel 'batch size'}
    if (p == 2 && narrow) {
        set key at screen 0.5, char (0.2 + 1.3 * key_rows) center top horizontal maxcols 2 \
            Left reverse samplen 0.8
    }
    plot for [k = 1:series_count] $points index k - 1 using (at($1, k)):c:(bar * 0.94) with boxes \
            linecolor rgb fill[k] title series_name[k], \
        for [k = 1:series_count] $points index k - 1 \
            using (at($1, k)):c + 1:(0):(column(c + 2) - column(c + 1)) \
            with vectors nohead linecolor rgb '#303030' linewidth 0.8
}
unset multiplot
unset output
