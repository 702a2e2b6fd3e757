def words(text):
    return text.lower().split()
