module breaches

go 1.26

require example.com/foreign v0.0.0

replace example.com/foreign => ./foreign
