include(plugins/plugins.cmake)
use_test_plugins(${test})
