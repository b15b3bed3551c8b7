d=esker.dataset(str(p/'e'))
for _ in range(4):
    d.take(rng.integers(0,rows,1000)); print(d.session().size_bytes()>>20,'MB')
