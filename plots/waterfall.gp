# waterfall.gp - memory by kind, from the base to the last level of saving; a panel for each system.
eval begin(narrow ? 0.8 + 4.6 * panel_count : 6.2)
kind_fill = "#4D4D4D #E69F00 #56B4E9"
set multiplot layout (narrow ? panel_count : 1), (narrow ? 1 : panel_count) \
    margins char 8, char 1, char 2.2, char 3.6 spacing char 7, char 4.4
set grid noxtics
set yrange [0:1.14 * memory_hi]
set ylabel 'memory (' . memory_label . ')' offset 1,0
set xtics scale 0
do for [p = 1:panel_count] {
    set title panel_title[p]
    stats $bars index p - 1 using 1 nooutput name 'bar'
    set xrange [0.45:bar_records + 0.55]
    if (p == 1) {
        set key at screen 0.5, screen 0.995 center top vertical maxrows 1 samplen 0.8
    } else {
        unset key
    }
    plot $bars index p - 1 using 1:($2 + $3 + $4):(0.62):xtic(6) with boxes \
            linecolor rgb word(kind_fill, 3) title 'activations', \
        $bars index p - 1 using 1:($2 + $3):(0.62) with boxes \
            linecolor rgb word(kind_fill, 2) title 'cache', \
        $bars index p - 1 using 1:2:(0.62) with boxes \
            linecolor rgb word(kind_fill, 1) title 'weights', \
        $bars index p - 1 using ($1 < bar_records ? $1 + 0.31 : NaN):($2 + $3 + $4):(0.38):(0) \
            with vectors nohead linecolor rgb grey dashtype 2 linewidth 0.8 notitle, \
        $bars index p - 1 using 1:($2 + $3 + $4):($1 > 1 ? sprintf('%+.0f %%', $5) : '') \
            with labels offset 0,0.6 notitle, \
        for [i = 1:tips(p)] $tips index p - 1 using 1:2:('[') @tip, \
        for [i = 1:tips(p)] $tips index p - 1 using 3:4:5 @tip
}
unset multiplot
unset output
