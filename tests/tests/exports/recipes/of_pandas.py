def columns(table, names):
    return globals()[table][names].astype(object).itertuples(index=False)
