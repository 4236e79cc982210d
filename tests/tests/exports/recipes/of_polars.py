def columns(table, names):
    return globals()[table].select(names).rows()
