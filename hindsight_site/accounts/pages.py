"""What every page shows around its content."""


def shell(request):
    return {}
