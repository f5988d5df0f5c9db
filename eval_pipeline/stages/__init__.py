"""The long loops, predict, judge and rejudge: concurrent, resumable, on disk before it counts."""
