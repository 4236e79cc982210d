import os, sys, zipfile
zips = [os.path.join(sys.argv[1], name) for name in os.listdir(sys.argv[1]) if name.endswith(".zip")]
for path in zips:
    with zipfile.ZipFile(path) as opened:
        assert opened.testzip() is None, path
        folder = path[:-len("zip")] + "members"
        assert sorted(opened.namelist()) == sorted(os.listdir(folder)), (path, opened.namelist())
        for name in opened.namelist():
            with open(os.path.join(folder, name), "rb") as text:
                assert opened.read(name) == text.read(), (path, name)
print(len(zips), "as expected")
