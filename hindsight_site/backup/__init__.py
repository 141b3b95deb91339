"""Backup and restore of the whole database, in one file that any PostgreSQL of ours can take.

`pg_dump` refuses here: the owner of the tables is behind row-level security too, and an administrator's
password is not always to be had. So the rows are copied out team by team, in one transaction that sees one
moment, and the schema is made anew by the migrations that the file names. For the same reason a file of an
older PostgreSQL, or of an external one, restores into a newer or the embedded one.

    manifest   what is in a file
    tables     the tables that are copied, and how
    writing    `manage.py backup`
    restoring  `manage.py restore`
"""
