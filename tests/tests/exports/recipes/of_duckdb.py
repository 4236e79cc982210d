import duckdb
connection = duckdb.connect()
connection.execute(open('recipe').read()).fetchall()
def columns(table, names):
    return connection.execute(f'SELECT {", ".join(names)} FROM {table}').fetchall()
