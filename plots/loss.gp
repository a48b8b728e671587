# loss.gp - training loss against tokens seen, a line for each model.
eval begin(width_cm > 10 ? 8 : 6)
set xlabel x_label
set ylabel 'loss (nats per token)'
set xrange [0:*]
set format x '%.0s%c'
set key top right Left reverse samplen 2
plot for [k = 1:series_count] $points index k - 1 using 1:2 with lines \
        linecolor rgb colour(series_kind[k]) linewidth 1.1 \
        dashtype kind_dash(series_kind[k]) title series_name[k], \
    for [k = 1:series_count] $points index k - 1 using 1:3 with points \
        linecolor rgb colour(series_kind[k]) pointtype 6 pointsize 0.7, \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset output
